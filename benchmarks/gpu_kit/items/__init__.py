"""The items of ``schedule.py``, a module each: ``cases(kit)`` lists what is measured, ``run(writer)`` does it all."""
