-- What a run waits for (status `waiting`), and what it did until then: the event log may drop that while it waits.
ALTER TABLE runs ADD COLUMN waiting_kind TEXT CHECK (waiting_kind IN ('approval', 'answer', 'agent', 'tool'));
ALTER TABLE runs ADD COLUMN waiting_id TEXT
  CHECK ((status = 'waiting') = (waiting_kind IS NOT NULL) AND (waiting_kind IS NULL) = (waiting_id IS NULL));
-- Up to which event the journal goes, and its steps as JSON. Last in the row, so that rows are read without it.
ALTER TABLE runs ADD COLUMN journal_up_to INTEGER;
ALTER TABLE runs ADD COLUMN journal TEXT CHECK ((journal IS NULL) = (journal_up_to IS NULL));
