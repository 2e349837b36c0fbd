"""Tables as they are printed: grids of cells, a paper's beside ours, in Markdown, LaTeX and CSV."""
