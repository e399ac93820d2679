"""Tables and figures of Maity, Xue, Yurochkin and Sun (ICLR 2021), declared where they are made."""
