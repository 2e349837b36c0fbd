"""Figures of a study: with Matplotlib for files, and in `interactive` with Plotly for the page."""
