"""A small game of Werewolf: five seats, one of which hides what it is."""
