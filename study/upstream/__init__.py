"""The environment variables of Ray and MLflow, and every use of Ray's inside, each in one place."""
