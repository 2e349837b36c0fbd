"""Processes and scratch folders, the environment variables of Ray and MLflow, and all uses of Ray's internals."""
