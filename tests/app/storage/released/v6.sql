-- A file of version 6 as that version wrote it, for the tests of every later one. Not to be changed.
PRAGMA application_id = 1181303656;
PRAGMA user_version = 6;
BEGIN TRANSACTION;
CREATE TABLE conversation (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    title TEXT NOT NULL CHECK (typeof(title) = 'text'),
    model TEXT NOT NULL DEFAULT '' CHECK (typeof(model) = 'text'),
    system_prompt TEXT NOT NULL DEFAULT '' CHECK (typeof(system_prompt) = 'text'),
    created INTEGER NOT NULL CHECK (typeof(created) = 'integer' AND created BETWEEN 0 AND 253402300799999),
    updated INTEGER NOT NULL CHECK (typeof(updated) = 'integer' AND updated BETWEEN 0 AND 253402300799999),
    activity INTEGER NOT NULL CHECK (typeof(activity) = 'integer'),
    deleted INTEGER CHECK (deleted IS NULL OR typeof(deleted) = 'integer' AND deleted BETWEEN 0 AND 253402300799999)
);
INSERT INTO "conversation" VALUES(1,'Gelöscht? No: 北京','other','',1767323048000,1767323049000,2,NULL);
INSERT INTO "conversation" VALUES(2,'Rome','Starter','Be brief.',1767323051000,1767323064000,10,NULL);
CREATE TABLE draft (
    conversation_id INTEGER UNIQUE REFERENCES conversation (id) ON DELETE CASCADE,
    content TEXT NOT NULL CHECK (typeof(content) = 'text')
);
INSERT INTO "draft" VALUES(2,'Thank');
INSERT INTO "draft" VALUES(NULL,'new');
CREATE TABLE message (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    conversation_id INTEGER NOT NULL REFERENCES conversation (id) ON DELETE CASCADE,
    parent INTEGER REFERENCES message (id) ON DELETE SET NULL,
    active INTEGER NOT NULL DEFAULT 1 CHECK (active IN (0, 1)),
    role TEXT NOT NULL CHECK (role IN ('system', 'user', 'assistant')),
    content TEXT NOT NULL CHECK (typeof(content) = 'text'),
    state TEXT NOT NULL CHECK (state IN ('complete', 'streaming', 'interrupted', 'stopped', 'error')),
    created INTEGER NOT NULL CHECK (typeof(created) = 'integer' AND created BETWEEN 0 AND 253402300799999),
    finished INTEGER CHECK (finished IS NULL OR typeof(finished) = 'integer' AND finished BETWEEN 0 AND 253402300799999),
    model TEXT NOT NULL DEFAULT '' CHECK (typeof(model) = 'text'),
    reason TEXT NOT NULL DEFAULT '' CHECK (typeof(reason) = 'text'),
    note TEXT NOT NULL DEFAULT '' CHECK (typeof(note) = 'text'),
    params TEXT,
    stats TEXT,
    run TEXT
);
INSERT INTO "message" VALUES(1,1,NULL,1,'user','It''s “quoted”
and has lines','complete',1767323050000,NULL,'','','',NULL,NULL,NULL);
INSERT INTO "message" VALUES(2,2,NULL,1,'user','When was Rome founded?','complete',1767323053000,NULL,'','','',NULL,NULL,NULL);
INSERT INTO "message" VALUES(3,2,2,0,'assistant','In 753','stopped',1767323055000,1767323056000,'Starter','cancelled','','{"sampling":{"temperature":0.5,"top_k":0,"top_p":1.0,"min_p":0.0,"repetition_penalty":1.0,"seed":3},"max_tokens":99,"stop":[],"stop_loops":false,"ignore_eos":false}',NULL,NULL);
INSERT INTO "message" VALUES(4,2,2,1,'assistant','In 753 BC.','complete',1767323059000,1767323060000,'Starter','eos','A note.','{"sampling":{"temperature":0.5,"top_k":0,"top_p":1.0,"min_p":0.0,"repetition_penalty":1.0,"seed":3},"max_tokens":99,"stop":[],"stop_loops":false,"ignore_eos":false}','{"prompt_tokens":0,"reused_tokens":0,"generated_tokens":5,"time_to_first_token":0.0,"prefill_seconds":0.0,"decode_seconds":0.0,"tokens_per_second":40.0,"tokens_per_second_now":0.0,"prefill_tokens_per_second":0.0,"context_used":0,"context_length":0,"seed":3,"hits":[[],[]]}',NULL);
INSERT INTO "message" VALUES(5,2,4,1,'user','And Paris?','complete',1767323063000,NULL,'','','',NULL,NULL,NULL);
INSERT INTO "message" VALUES(6,2,5,1,'assistant','In the third cen','streaming',1767323065000,NULL,'Starter','','','{"sampling":{"temperature":0.5,"top_k":0,"top_p":1.0,"min_p":0.0,"repetition_penalty":1.0,"seed":3},"max_tokens":99,"stop":[],"stop_loops":false,"ignore_eos":false}',NULL,'0123456789abcdef');
CREATE INDEX conversation_activity ON conversation (activity);
CREATE INDEX message_conversation ON message (conversation_id, active, id);
CREATE INDEX message_parent ON message (parent);
CREATE INDEX message_streaming ON message (run) WHERE state = 'streaming';
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('conversation',2);
INSERT INTO "sqlite_sequence" VALUES('message',6);
ALTER TABLE conversation ADD COLUMN pinned INTEGER NOT NULL DEFAULT 0 CHECK (pinned IN (0, 1));
ALTER TABLE conversation ADD COLUMN archived INTEGER NOT NULL DEFAULT 0 CHECK (archived IN (0, 1));
CREATE VIRTUAL TABLE message_index USING fts5(body, tokenize = 'trigram case_sensitive 1');
CREATE VIRTUAL TABLE message_terms USING fts5vocab('message_index', 'instance');
CREATE TABLE unindexed (id INTEGER PRIMARY KEY);
CREATE TRIGGER message_added AFTER INSERT ON message WHEN new.state <> 'streaming' BEGIN INSERT OR IGNORE INTO unindexed (id) VALUES (new.id); END;
CREATE TRIGGER message_changed AFTER UPDATE OF content, state ON message WHEN new.state <> 'streaming' BEGIN INSERT OR IGNORE INTO unindexed (id) VALUES (new.id); END;
CREATE TRIGGER message_removed AFTER DELETE ON message BEGIN INSERT OR IGNORE INTO unindexed (id) VALUES (old.id); END;
UPDATE conversation SET pinned = 1 WHERE id = 2;
INSERT INTO message_index (rowid, body) VALUES (2, 'when was rome founded?

');
INSERT INTO message_index (rowid, body) VALUES (4, 'in 753 bc.

');
INSERT INTO unindexed (id) VALUES (1), (3), (5);
CREATE TABLE next_message (
        conversation_id INTEGER UNIQUE REFERENCES conversation (id) ON DELETE CASCADE,
        content TEXT NOT NULL CHECK (typeof(content) = 'text')
    );
INSERT INTO next_message VALUES(2,'And Lyon?');
INSERT INTO next_message VALUES(NULL,'new, too');
ALTER TABLE conversation ADD COLUMN parameters TEXT;
ALTER TABLE message ADD COLUMN seen_from INTEGER CHECK (seen_from IS NULL OR typeof(seen_from) = 'integer');
UPDATE conversation SET parameters = '{"preset":"precise","temperature":0.2,"overflow":"drop_oldest"}' WHERE id = 2;
UPDATE message SET seen_from = 5 WHERE id = 6;
CREATE TABLE edit (
        message_id INTEGER PRIMARY KEY REFERENCES message (id) ON DELETE CASCADE,
        content TEXT NOT NULL CHECK (typeof(content) = 'text')
    );
INSERT INTO edit VALUES(5,'And Paris, then?');
CREATE TABLE deleted_turn (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        conversation_id INTEGER NOT NULL REFERENCES conversation (id) ON DELETE CASCADE,
        deleted INTEGER NOT NULL CHECK (typeof(deleted) = 'integer' AND deleted BETWEEN 0 AND 253402300799999),
        content TEXT NOT NULL CHECK (typeof(content) = 'text')
    );
CREATE INDEX deleted_turn_conversation ON deleted_turn (conversation_id);
CREATE TABLE draft_files (
        conversation_id INTEGER UNIQUE REFERENCES conversation (id) ON DELETE CASCADE,
        content TEXT NOT NULL CHECK (typeof(content) = 'text')
    );
INSERT INTO draft_files VALUES(1,'Attached file: note.txt
```txt
In 753 BC.
```');
COMMIT;
