"""WebShop's official files: products, goals and their splits."""
