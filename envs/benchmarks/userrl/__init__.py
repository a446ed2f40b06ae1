"""UserRL's gyms (Qian et al. 2025, arXiv 2509.19736): an agent learns to find out what a user has in mind.

Function, Intention, Telepathy, Turtle and Persuade are here. The other gyms of UserRL have their place elsewhere in
this project: its Tau is tau-bench, its Search is question answering with a search tool. Travel is not here.
"""
