-- Which hosts each required secret of a skill may be sent to, and the hash of its files, by which a later change is noticed.
-- The table is made anew, so that its large columns come last again.
CREATE TABLE pinned_skills (
  instance_id TEXT NOT NULL REFERENCES instances ON DELETE CASCADE,
  name TEXT NOT NULL,
  version TEXT NOT NULL,
  description TEXT NOT NULL,
  source TEXT NOT NULL CHECK (source IN ('catalog', 'upload')),
  installed_at INTEGER NOT NULL,
  -- JSON: the secrets, hosts and tools that it names.
  requires TEXT NOT NULL,
  -- JSON, secret → hosts.
  secret_hosts TEXT NOT NULL,
  -- Of all its files. Null only until the first start with this schema: SQL cannot make it.
  sha256 TEXT,
  text_bytes INTEGER NOT NULL,
  instructions TEXT NOT NULL,
  -- JSON, file name → text: an installed skill does not change when the catalog does.
  files TEXT NOT NULL,
  PRIMARY KEY (instance_id, name)
) STRICT;

-- Until now, every secret of a skill could be sent to all of its hosts.
INSERT INTO pinned_skills
SELECT instance_id, name, version, description, source, installed_at, requires,
  (SELECT json_group_object(value, json(coalesce(requires ->> '$.hosts', '[]'))) FROM json_each(requires, '$.secrets')),
  NULL, text_bytes, instructions, files
FROM installed_skills;

DROP TABLE installed_skills;
ALTER TABLE pinned_skills RENAME TO installed_skills;
-- Counted and summed from here alone.
CREATE INDEX installed_skill_sizes ON installed_skills (instance_id, text_bytes);
CREATE INDEX unpinned_skills ON installed_skills (instance_id, name) WHERE sha256 IS NULL;
