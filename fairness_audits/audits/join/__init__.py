"""One loss-ratio test of all rows, from the results of parts of them."""
