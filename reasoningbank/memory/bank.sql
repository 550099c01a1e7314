-- A memory bank: items, their history, and embeddings by the name of the model.
CREATE TABLE items (
    key INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    status TEXT NOT NULL,
    src TEXT NOT NULL,
    title TEXT NOT NULL,
    item TEXT NOT NULL -- the whole item as JSON
);
CREATE INDEX hurt_of_item ON items(
    -- A damaged item is reported when it is read.
    json_extract(iif(json_valid(item), item, '{}'), '$.counters.hurt')
);
CREATE TABLE changes (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    operation INTEGER NOT NULL, -- first number of what was changed together
    time TEXT NOT NULL,
    action TEXT NOT NULL,
    item_id TEXT NOT NULL,
    before TEXT, -- the whole item as JSON
    after TEXT,
    reason TEXT NOT NULL
);
CREATE INDEX changes_of_item ON changes(item_id);
CREATE INDEX changes_together ON changes(operation);
CREATE TABLE embeddings (
    item_id TEXT NOT NULL,
    embedder TEXT NOT NULL,
    vector BLOB NOT NULL, -- little-endian float16, length 1
    PRIMARY KEY (item_id, embedder)
) WITHOUT ROWID;
CREATE TABLE operations (
    operation INTEGER PRIMARY KEY,
    made_by TEXT NOT NULL, -- the part of the program that decided on it
    undoes INTEGER NOT NULL -- the operation that it undoes, or 0
);
