"""Work in pieces that may be carried: shards of an audit, cells of a sweep, steps of a study."""
