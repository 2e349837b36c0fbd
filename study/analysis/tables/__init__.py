"""Printed tables: grids of cells, our numbers beside a paper's, in Markdown, LaTeX and CSV."""
