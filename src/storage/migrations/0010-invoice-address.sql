-- Where an invoice is paid to: the host may have another address by the time it is paid. The next start notes its own of
-- the invoices that are here already.
ALTER TABLE invoices ADD COLUMN pay_to TEXT NOT NULL DEFAULT '';
CREATE INDEX invoices_without_address ON invoices (invoice_id) WHERE pay_to = '';
