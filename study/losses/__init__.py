"""The papers' losses as pure functions of embeddings. This package knows tensors only."""
