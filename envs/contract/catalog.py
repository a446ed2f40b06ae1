"""The environments of this project."""

from manyturn.envs.contract.environments import register


def register_all() -> None:
    """Register the ids of this project with Gymnasium; nothing is imported until one is made."""
    register("manyturn/GuessNumber-v0", "manyturn.envs.classics.guess_number:GuessNumber")
    register("manyturn/Maze-v0", "manyturn.envs.classics.maze:Maze")
    register("manyturn/Household-v0", "manyturn.envs.household.env:Household")
    register("manyturn/Shop-v0", "manyturn.envs.shop.made.env:Shop")
    register("manyturn/WebShop-v0", "manyturn.envs.shop.env:WebShop")
    register("manyturn/ShopPages-v0", "manyturn.envs.shop.pages_env:ShopPages")
    register("manyturn/MiniWoB-v0", "manyturn.envs.benchmarks.miniwob.env:MiniWoB")
    register("manyturn/Software-v0", "manyturn.envs.software.env:Software")
    register("manyturn/SWEBench-v0", "manyturn.envs.benchmarks.swebench.env:SWEBench")
    register("manyturn/Desk-v0", "manyturn.envs.desk.env:Desk")
    register("manyturn/TauBench-v0", "manyturn.envs.benchmarks.tau.env:TauBench")
    register("manyturn/Tau2Bench-v0", "manyturn.envs.benchmarks.tau.env2:Tau2Bench")
    register("manyturn/BFCL-v0", "manyturn.envs.benchmarks.bfcl.env:BFCL")
    register("manyturn/AppWorld-v0", "manyturn.envs.benchmarks.appworld.env:AppWorld")
    register("manyturn/Sotopia-v0", "manyturn.envs.benchmarks.sotopia.env:Sotopia")
    register("manyturn/UserRL-Function-v0", "manyturn.envs.benchmarks.userrl.function:Function")
    register("manyturn/UserRL-Intention-v0", "manyturn.envs.benchmarks.userrl.intention:Intention")
    register("manyturn/UserRL-Persuade-v0", "manyturn.envs.benchmarks.userrl.persuade:Persuade")
    register("manyturn/UserRL-Telepathy-v0", "manyturn.envs.benchmarks.userrl.telepathy:Telepathy")
    register("manyturn/UserRL-Turtle-v0", "manyturn.envs.benchmarks.userrl.turtle:Turtle")
    register("manyturn/Talk-Booking-v0", "manyturn.envs.talk.booking.env:Booking")
    register("manyturn/Talk-Negotiation-v0", "manyturn.envs.talk.bargain.negotiation:Negotiation")
    register("manyturn/Talk-SelfPlay-v0", "manyturn.envs.talk.bargain.self_play:SelfPlay")
    register("manyturn/Talk-TwentyQuestions-v0", "manyturn.envs.talk.guessing.env:TwentyQuestions")
    register("manyturn/Talk-GuessCity-v0", "manyturn.envs.talk.guessing.env:GuessCity")
    register("manyturn/Talk-Support-v0", "manyturn.envs.talk.support.env:Support")
    register("manyturn/Talk-Tutor-v0", "manyturn.envs.talk.tutor.env:Tutor")
    register("manyturn/Search-v0", "manyturn.envs.search.env:Search")
    register("manyturn/Code-v0", "manyturn.envs.code.env:Code")
