"""The commit log as a feed: cursors, watches and what drives them."""
