/** Apart from the tables, so that the command line loads no database for it. */
export const APPROVAL_STATUSES = ["open", "approved", "denied", "answered", "expired", "cancelled"] as const;
export type ApprovalStatus = (typeof APPROVAL_STATUSES)[number];
