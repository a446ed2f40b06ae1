"""Tasks: what an environment can be asked, panels of them, and facts about them."""
