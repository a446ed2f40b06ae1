"""WebShop's reward for a purchase."""
