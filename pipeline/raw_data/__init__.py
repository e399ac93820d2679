"""Raw files, and how data sets are made from them."""
