"""Tables and figures of Black, Yeom and Fredrikson (FAT* 2020), declared where they are made."""
