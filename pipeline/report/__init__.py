"""Tables, figures, the comparison with the published numbers, and the page that shows them, all from tidy rows."""
