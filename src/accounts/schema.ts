import { blob, integer, primaryKey, sqliteTable, text } from "drizzle-orm/sqlite-core";
import type { ModelLimits } from "../limits/model-limits.ts";
import { micros } from "../storage/columns.ts";

export const accounts = sqliteTable("accounts", {
  accountId: text("account_id").primaryKey(),
  email: text("email").notNull(),
  name: text("name").notNull(),
  tokenEpoch: integer("token_epoch").notNull().default(0),
  monthlyLimit: micros("monthly_limit"),
  suspendedAt: integer("suspended_at"),
  createdAt: integer("created_at").notNull(),
  /** The owner's own, besides the operator's; null without any. */
  modelLimits: text("model_limits", { mode: "json" }).$type<ModelLimits>(),
});

export const invites = sqliteTable("invites", {
  inviteId: text("invite_id").primaryKey(),
  codeHash: blob("code_hash", { mode: "buffer" }).notNull(),
  uses: integer("uses").notNull(),
  usesLeft: integer("uses_left").notNull(),
  credit: micros("credit").notNull(),
  createdAt: integer("created_at").notNull(),
  expiresAt: integer("expires_at").notNull(),
  revokedAt: integer("revoked_at"),
});

export const signInCodes = sqliteTable("sign_in_codes", {
  codeId: integer("code_id").primaryKey(),
  email: text("email").notNull(),
  /** The requester's address key (src/limits/address.ts). */
  address: text("address").notNull(),
  codeHmac: blob("code_hmac", { mode: "buffer" }).notNull(),
  inviteId: text("invite_id"),
  /** Tries from the address that requested it, and from all others together. */
  tries: integer("tries").notNull().default(0),
  otherTries: integer("other_tries").notNull().default(0),
  createdAt: integer("created_at").notNull(),
  expiresAt: integer("expires_at").notNull(),
  usedAt: integer("used_at"),
  /** Set if its mail could not be sent: it counts against limits, but does not sign in. */
  refusedAt: integer("refused_at"),
});

/** The address keys from which an account has signed in. */
export const signInAddresses = sqliteTable(
  "sign_in_addresses",
  {
    accountId: text("account_id").notNull(),
    address: text("address").notNull(),
    signedInAt: integer("signed_in_at").notNull(),
  },
  (table) => [primaryKey({ columns: [table.accountId, table.address] })],
);

/** Tokens signed out before their expiry. */
export const signedOutTokens = sqliteTable("signed_out_tokens", {
  tokenId: text("token_id").primaryKey(),
  expiresAt: integer("expires_at").notNull(),
});

export const signInLinks = sqliteTable("sign_in_links", {
  tokenHash: blob("token_hash", { mode: "buffer" }).primaryKey(),
  email: text("email").notNull(),
  credit: micros("credit").notNull(),
  createdAt: integer("created_at").notNull(),
  expiresAt: integer("expires_at").notNull(),
  usedAt: integer("used_at"),
});

export const apiKeys = sqliteTable("api_keys", {
  keyId: text("key_id").primaryKey(),
  accountId: text("account_id").notNull(),
  name: text("name"),
  prefix: text("prefix").notNull(),
  keyHash: blob("key_hash", { mode: "buffer" }).notNull(),
  /** Space-separated. */
  scopes: text("scopes").notNull(),
  instanceId: text("instance_id"),
  createdAt: integer("created_at").notNull(),
  expiresAt: integer("expires_at"),
  lastUsedAt: integer("last_used_at"),
  lastAddress: text("last_address"),
});

export type Account = typeof accounts.$inferSelect;
export type Invite = typeof invites.$inferSelect;
export type ApiKey = typeof apiKeys.$inferSelect;
