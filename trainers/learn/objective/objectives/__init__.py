"""Policy losses, one per file, with the parts they share: aggregation and KL estimators.

Tensors are (B, L): B rows of L token positions. Importing these modules does not import torch.
"""
