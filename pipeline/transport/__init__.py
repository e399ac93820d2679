"""Transport maps used only by the studies; the others are in the library."""
