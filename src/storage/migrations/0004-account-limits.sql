-- What an operator allows one account, where it is not the host's default (roost account limit).
CREATE TABLE account_limits (
  account_id TEXT NOT NULL REFERENCES accounts,
  name TEXT NOT NULL,
  value INTEGER NOT NULL CHECK (value >= 0),
  PRIMARY KEY (account_id, name)
) STRICT, WITHOUT ROWID;
