"""From tidy rows to tables, figures, the comparison with the published numbers, and one page that shows them all."""
