-- OAuth authorizations of MCP servers (docs/contract/security.md, Authorization of MCP servers): those that wait for a browser, which is
-- known by its state alone, and what those that were completed have given.
CREATE TABLE mcp_authorizations (
  server_id TEXT NOT NULL PRIMARY KEY,
  -- SHA-256: whoever reads the database cannot complete one.
  state_hash BLOB NOT NULL UNIQUE,
  -- Of `sealed` (src/secrets/vault.ts): the client, the PKCE verifier, and whom they are for.
  data_key_id INTEGER NOT NULL,
  sealed BLOB NOT NULL,
  expires_at INTEGER NOT NULL
) STRICT;
CREATE INDEX mcp_authorizations_by_expiry ON mcp_authorizations (expires_at);

CREATE TABLE mcp_credentials (
  server_id TEXT NOT NULL PRIMARY KEY,
  -- Who has given them, and is the only one to be shown them.
  issuer TEXT NOT NULL,
  -- Of `sealed`: the client and its tokens.
  data_key_id INTEGER NOT NULL,
  sealed BLOB NOT NULL,
  updated_at INTEGER NOT NULL
) STRICT;

-- What was given for one URL is for no other.
CREATE TRIGGER mcp_server_removed AFTER DELETE ON mcp_servers BEGIN
  DELETE FROM mcp_authorizations WHERE server_id = OLD.server_id;
  DELETE FROM mcp_credentials WHERE server_id = OLD.server_id;
END;
CREATE TRIGGER mcp_server_moved AFTER UPDATE OF url ON mcp_servers WHEN NEW.url <> OLD.url BEGIN
  DELETE FROM mcp_authorizations WHERE server_id = OLD.server_id;
  DELETE FROM mcp_credentials WHERE server_id = OLD.server_id;
END;
