import { z } from "zod";
import { email, money, needsOneOf, time, trimmedText } from "../http/fields.ts";
import { pageOf, pageQuery, toPage } from "../http/paging.ts";
import { type Route, route } from "../http/route.ts";
import { AppError } from "../lib/app-error.ts";
import { type Clock, isoTime } from "../lib/clock.ts";
import { idForm } from "../lib/forms.ts";
import { CURRENCY, formatMoney, type Micros, parseMoney } from "../lib/money.ts";
import { addressKey } from "../limits/address.ts";
import { authorize, type Caller, SCOPES, USUAL_SCOPES } from "../limits/caller.ts";
import type { Accounts } from "./accounts.ts";
import type { Keys } from "./keys.ts";
import { AccountRecord, KeyRecord, SignedIn, showKey } from "./record.ts";
import type { RevokedTokens } from "./revoked-tokens.ts";
import type { Account } from "./schema.ts";
import { CODE_LIFE_SECONDS, type SignIn } from "./sign-in.ts";
import type { SignInLinks } from "./sign-in-links.ts";
import type { Tokens } from "./tokens.ts";

export interface AccountRouteParts {
  clock: Clock;
  accounts: Accounts;
  signIn: SignIn;
  links: SignInLinks;
  tokens: Tokens;
  keys: Keys;
  revokedTokens: RevokedTokens;
  /** What an account has and has used in this calendar month (UTC), up to this moment. */
  standingOf(accountId: string): { balance: Micros; spentThisMonth: Micros };
  /** Called in the transaction that changes an account's monthly limit. */
  limitChanged(accountId: string): void;
  /** Throws `not_found` for an instance that is not the caller's. */
  requireInstance(caller: Caller, instanceId: string): void;
}

const LINK = "the token of a sign-in link";
const SCOPE_LIST = `a list of at least one of ${SCOPES.join(", ")}`;

export function accountRoutes(parts: AccountRouteParts): Route[] {
  const { clock, accounts, signIn, links, tokens, keys, revokedTokens, standingOf, limitChanged, requireInstance } =
    parts;

  function show(account: Account) {
    const { balance, spentThisMonth } = standingOf(account.accountId);
    return {
      accountId: account.accountId,
      email: account.email,
      name: account.name,
      createdAt: isoTime(account.createdAt),
      balance: formatMoney(balance),
      currency: CURRENCY,
      limits: {
        monthlyLimit: account.monthlyLimit === null ? null : formatMoney(account.monthlyLimit),
        spentThisMonth: formatMoney(spentThisMonth),
      },
    };
  }
  async function signedIn(account: Account) {
    const { token, expiresAt } = await tokens.issue({ accountId: account.accountId, epoch: account.tokenEpoch });
    return { token, tokenType: "Bearer", expiresAt: isoTime(expiresAt), account: show(account) };
  }

  return [
    route({
      method: "POST",
      path: "/v1/auth/send-code",
      name: "sendCode",
      tag: "auth",
      summary: "Mail a sign-in code; a stranger needs an invite code",
      description:
        "The code has eight digits, is valid for ten minutes and replaces the one before. A host without a mail server shows it on its terminal.",
      access: "public",
      bound: "outside",
      idempotent: false,
      body: z.object({
        email,
        inviteCode: z.string({ error: "an invite code" }).max(200, { error: "an invite code" }).nullish(),
      }),
      example: { email: "ada@example.org", inviteCode: "roost-3kTn8vQpXw5Zb2" },
      answer: z.object({ sent: z.literal(true), expiresInSeconds: z.int() }),
      errors: ["invite_required", "rate_limited"],
      async handle({ address, body }) {
        const from = addressKey(address());
        signIn.checkAddress(from);
        const input = await body();
        await signIn.sendCode({ email: input.email, inviteCode: input.inviteCode ?? null, address: from });
        return { sent: true, expiresInSeconds: CODE_LIFE_SECONDS };
      },
    }),
    route({
      method: "POST",
      path: "/v1/auth/verify-code",
      name: "verifyCode",
      tag: "auth",
      summary: "Turn a sign-in code into a token",
      access: "public",
      bound: "record",
      idempotent: false,
      body: z.object({
        email,
        code: z
          .string({ error: "8 digits" })
          .regex(/^\d{8}$/, { error: "8 digits" })
          .meta({ examples: ["12345678"] }),
        name: trimmedText(1, 100).nullish(),
      }),
      example: { email: "ada@example.org", code: "12345678", name: "Ada" },
      answer: SignedIn,
      errors: ["unauthorized", "invite_required", "forbidden"],
      async handle({ address, body }) {
        const { email, code, name = null } = await body();
        return signedIn(signIn.verifyCode({ email, code, name, address: addressKey(address()) }));
      },
    }),
    route({
      method: "POST",
      path: "/v1/auth/redeem-link",
      name: "redeemLink",
      tag: "auth",
      summary: "Turn the token of a sign-in link into a token",
      access: "public",
      bound: "record",
      idempotent: false,
      body: z.object({ link: z.string({ error: LINK }).min(1, { error: LINK }).max(100, { error: LINK }) }),
      example: { link: "9mXc4TqLw2Zb7NvKp3Rs" },
      answer: SignedIn,
      errors: ["unauthorized", "forbidden"],
      async handle({ address, body }) {
        const { link } = await body();
        return signedIn(links.redeem(link, addressKey(address())));
      },
    }),
    route({
      method: "GET",
      path: "/v1/auth/me",
      name: "getAccount",
      tag: "auth",
      summary: "The account of this credential",
      access: "read",
      bound: "record",
      answer: AccountRecord,
      handle: ({ caller }) => show(accounts.get(caller.accountId)),
    }),
    route({
      method: "PATCH",
      path: "/v1/auth/me",
      name: "updateAccount",
      tag: "auth",
      summary: "Change the account's name or monthly limit",
      access: "account",
      bound: "record",
      body: z
        .object({ name: trimmedText(1, 100).optional(), monthlyLimit: money.nullable().optional() })
        .meta(needsOneOf("name", "monthlyLimit")),
      example: { monthlyLimit: "25.00" },
      answer: AccountRecord,
      commit: "shared",
      write({ caller, body: { name, monthlyLimit } }) {
        if (name === undefined && monthlyLimit === undefined) {
          throw new AppError("invalid_request", "body: expected at least one of name, monthlyLimit");
        }
        const account = accounts.update(caller.accountId, {
          ...(name === undefined ? {} : { name }),
          ...(monthlyLimit === undefined
            ? {}
            : { monthlyLimit: monthlyLimit === null ? null : parseMoney(monthlyLimit) }),
        });
        if (monthlyLimit !== undefined) limitChanged(caller.accountId);
        return show(account);
      },
    }),
    route({
      method: "POST",
      path: "/v1/auth/keys",
      name: "createKey",
      tag: "auth",
      summary: "Create an API key; it is shown only once",
      description:
        "A key limited to an instance sees nothing else of the account. `approve` is for keys that decide about what agents ask; it is not among the scopes that a key has by default, and only a caller who has it can give it.",
      access: "keys",
      bound: "record",
      body: z.object({
        name: trimmedText(1, 100).nullish(),
        scopes: z
          .array(z.enum(SCOPES, { error: SCOPE_LIST }), { error: SCOPE_LIST })
          .min(1, { error: SCOPE_LIST })
          .max(10, { error: SCOPE_LIST })
          .optional(),
        instanceId: z
          .string({ error: "an instance's id" })
          .meta(idForm("inst").meta() ?? {})
          .nullish(),
        expiresAt: time.meta({ description: "A time in the future", examples: ["2030-01-01T00:00:00Z"] }).nullish(),
      }),
      example: { name: "laptop", scopes: ["read", "write", "chat"] },
      status: 201,
      // Absent from a replayed answer: the key itself is stored nowhere.
      answer: z.lazy(() => KeyRecord.unwrap().extend({ key: z.string().optional() })),
      errors: ["not_found", "conflict"],
      kept: (result: { key?: string }) => ({ ...result, key: undefined }),
      commit: "shared",
      write({ caller, body: { name = null, scopes = USUAL_SCOPES, instanceId = null, expiresAt = null } }) {
        if (instanceId !== null) requireInstance(caller, instanceId);
        // Nobody gives away what they do not have.
        if (scopes.includes("approve")) authorize(caller, "approve");
        const { key, record } = keys.create(caller.accountId, {
          name,
          scopes,
          instanceId,
          expiresAt: expiresAt === null ? null : Date.parse(expiresAt),
        });
        return { ...showKey(record), key };
      },
    }),
    route({
      method: "GET",
      path: "/v1/auth/keys",
      name: "listKeys",
      tag: "auth",
      summary: "List API keys, newest first",
      access: "keys",
      bound: "page",
      query: pageQuery,
      answer: pageOf(KeyRecord),
      handle({ caller, query, startPage }) {
        const start = startPage(`keys ${caller.accountId}`, query());
        const rows = keys.list(caller.accountId, start.position, start.limit + 1);
        return toPage(start, rows, (row) => row.keyId, showKey);
      },
    }),
    route({
      method: "DELETE",
      path: "/v1/auth/keys/:keyId",
      name: "deleteKey",
      tag: "auth",
      summary: "Revoke an API key",
      access: "keys",
      bound: "record",
      answer: z.object({ keyId: idForm("key"), deleted: z.literal(true) }),
      commit: "alone",
      write({ caller, params }) {
        keys.revoke(caller.accountId, params.keyId);
        return { keyId: params.keyId, deleted: true };
      },
    }),
    route({
      method: "POST",
      path: "/v1/auth/revoke-tokens",
      name: "revokeTokens",
      tag: "auth",
      summary: "Make every token issued so far invalid; keys stay valid",
      description: "API keys stay valid.",
      access: "keys",
      bound: "record",
      answer: z.object({ revokedAt: z.iso.datetime() }),
      commit: "shared",
      write({ caller }) {
        accounts.revokeTokens(caller.accountId);
        return { revokedAt: isoTime(clock.now()) };
      },
    }),
    route({
      method: "POST",
      path: "/v1/auth/sign-out",
      name: "signOut",
      tag: "auth",
      summary: "Make the token of this request invalid; other tokens and all keys stay valid",
      access: "read",
      bound: "record",
      answer: z.object({ signedOut: z.literal(true) }),
      find({ caller }) {
        const token = caller.credentials.find(({ kind }) => kind === "token");
        if (token?.kind === "token") return token;
        throw new AppError("forbidden", "an API key signs nobody in: revoke it with DELETE /v1/auth/keys/:keyId");
      },
      commit: "shared",
      write({ found }) {
        revokedTokens.add(found.tokenId, found.expiresAt);
        return { signedOut: true };
      },
    }),
  ];
}
