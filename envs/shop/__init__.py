"""Shop: search a catalogue, read pages, choose options and buy, with WebShop's pages, ranking and reward."""
