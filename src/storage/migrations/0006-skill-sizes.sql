-- What an installed skill's files hold in all, in bytes of UTF-8: an instance's quota is counted without its texts.
ALTER TABLE installed_skills ADD COLUMN text_bytes INTEGER NOT NULL DEFAULT 0;
UPDATE installed_skills SET text_bytes = (SELECT coalesce(sum(octet_length(value)), 0) FROM json_each(files));
-- Counted and summed from here alone: the column stands behind the texts in its row.
CREATE INDEX installed_skill_sizes ON installed_skills (instance_id, text_bytes);
