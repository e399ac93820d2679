"""Tables and figures of Nanda, Dooley, Singla, Feizi and Dickerson (FAccT 2021), declared where they are made."""
