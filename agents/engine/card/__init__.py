"""The memory of the card that learner and engine share: its plan, and its hand-over from one to the other."""
