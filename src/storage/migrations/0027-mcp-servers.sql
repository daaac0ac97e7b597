-- Servers of the Model Context Protocol whose tools an instance's agents have (docs/contract/api.md, MCP servers).
CREATE TABLE mcp_servers (
  server_id TEXT NOT NULL PRIMARY KEY,
  instance_id TEXT NOT NULL,
  name TEXT NOT NULL,
  url TEXT NOT NULL,
  -- JSON: by name; secrets as placeholders.
  headers TEXT NOT NULL,
  status TEXT NOT NULL
    CHECK (status = 'ready' OR status = 'unreachable' OR status = 'needs_authorization' OR status = 'changed'),
  status_reason TEXT,
  protocol_version TEXT,
  -- JSON: what it was seen to offer, and which definitions the owner has approved.
  tools TEXT NOT NULL,
  -- Counts the changes of the row.
  revision INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX mcp_servers_of_instance ON mcp_servers (instance_id, name);

-- Agents are told of changed tools as they are of a changed status.
CREATE TABLE instance_aftermath_next (
  instance_id TEXT NOT NULL,
  kind TEXT NOT NULL
    CHECK (kind = 'agent.deleted' OR kind = 'cancel' OR kind = 'instance.runway' OR kind = 'instance.status'
      OR kind = 'mcp.changed'),
  -- JSON: what the event says.
  data TEXT NOT NULL,
  told_to TEXT NOT NULL DEFAULT '',
  told_until TEXT NOT NULL DEFAULT '',
  PRIMARY KEY (instance_id, kind)
) STRICT, WITHOUT ROWID;
INSERT INTO instance_aftermath_next SELECT * FROM instance_aftermath;
DROP TABLE instance_aftermath;
ALTER TABLE instance_aftermath_next RENAME TO instance_aftermath;
