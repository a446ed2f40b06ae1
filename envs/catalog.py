"""The environments of this project."""

from manyturn.envs.registry import register


def register_all() -> None:
    """Register the ids of this project with Gymnasium; nothing is imported until one is made."""
    register("manyturn/GuessNumber-v0", "manyturn.envs.classics.guess_number:GuessNumber")
    register("manyturn/Maze-v0", "manyturn.envs.classics.maze:Maze")
    register("manyturn/Household-v0", "manyturn.envs.household.env:Household")
    register("manyturn/Shop-v0", "manyturn.envs.shop.made.env:Shop")
    register("manyturn/WebShop-v0", "manyturn.envs.shop.env:WebShop")
    register("manyturn/ShopPages-v0", "manyturn.envs.shop.pages_env:ShopPages")
    register("manyturn/MiniWoB-v0", "manyturn.envs.miniwob.env:MiniWoB")
