"""The environment variables of Ray and MLflow, and all uses of Ray's internals, each in one place."""
