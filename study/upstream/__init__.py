"""What Ray and MLflow are told and asked beyond what they promise: their settings and their insides, in one place."""
