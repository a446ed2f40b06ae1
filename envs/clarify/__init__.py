"""Ask before you act: requests that may fit several things, questions that cost, and the exact value of each."""
