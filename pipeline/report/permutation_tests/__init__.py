"""Tables and figures of DiCiccio, Vasudevan, Basu, Kenthapadi and Agarwal (KDD 2020), declared where they are made."""
