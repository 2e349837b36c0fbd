"""The data sets, one module each; see `study.data` for what a module has to define."""
