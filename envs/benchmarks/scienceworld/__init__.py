"""ScienceWorld: experiments of primary school in the authors' own simulator, which runs in Java."""
