"""How `tertium-multi` was made: pack the texts, train on a GPU, ship."""
