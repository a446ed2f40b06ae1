"""Drawing with vLLM, in processes next to the learner."""
