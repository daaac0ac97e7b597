import { z } from "zod";
import { changeOf, email, modelLimits, money, trimmedText } from "../http/fields.ts";
import { type Route, route } from "../http/route.ts";
import { AppError } from "../lib/app-error.ts";
import { type Clock, isoTime } from "../lib/clock.ts";
import { CURRENCY, formatMoney, type Micros, parseMoney } from "../lib/money.ts";
import { addressKey } from "../limits/address.ts";
import { type ModelLimitChange, type ModelLimits, showModelLimits, withModelLimits } from "../limits/model-limits.ts";
import type { Accounts } from "./accounts.ts";
import { type KeyRouteParts, keyRoutes } from "./key-routes.ts";
import { AccountRecord, SignedIn } from "./record.ts";
import type { RevokedTokens } from "./revoked-tokens.ts";
import type { Account } from "./schema.ts";
import { CODE_LIFE_SECONDS, type SignIn } from "./sign-in.ts";
import type { SignInLinks } from "./sign-in-links.ts";
import type { Tokens } from "./tokens.ts";

export interface AccountRouteParts extends KeyRouteParts {
  clock: Clock;
  accounts: Accounts;
  signIn: SignIn;
  links: SignInLinks;
  tokens: Tokens;
  revokedTokens: RevokedTokens;
  /** What an account has and has used in this calendar month (UTC), up to this moment. */
  standingOf(accountId: string): { balance: Micros; spentThisMonth: Micros };
  /** What the operator lets an account take of the host's models; null without a limit. */
  operatorLimits(accountId: string): Pick<ModelLimits, "tokensPerDay" | "tokensPerMonth">;
  /** Called in the transaction that changes an account's monthly limit. */
  limitChanged(accountId: string): void;
}

const LINK = "the token of a sign-in link";

export function accountRoutes(parts: AccountRouteParts): Route[] {
  const { clock, accounts, signIn, links, tokens, revokedTokens, standingOf, operatorLimits, limitChanged } = parts;

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
        ...operatorLimits(account.accountId),
      },
      modelLimits: showModelLimits(account.modelLimits),
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
      summary: "Change the account's name, its monthly limit, or what its models may take",
      access: "account",
      bound: "record",
      body: changeOf({
        name: trimmedText(1, 100).optional(),
        monthlyLimit: money.nullable().optional(),
        modelLimits: modelLimits.optional(),
      }),
      example: { monthlyLimit: "25.00" },
      answer: AccountRecord,
      commit: "shared",
      write({ caller, body: { name, monthlyLimit, modelLimits } }) {
        const { accountId } = caller;
        if (modelLimits) requireWithin(modelLimits, operatorLimits(accountId));
        const account = accounts.update(accountId, {
          ...(modelLimits === undefined
            ? {}
            : { modelLimits: withModelLimits(accounts.get(accountId).modelLimits, modelLimits) }),
          ...(name === undefined ? {} : { name }),
          ...(monthlyLimit === undefined
            ? {}
            : { monthlyLimit: monthlyLimit === null ? null : parseMoney(monthlyLimit) }),
        });
        if (monthlyLimit !== undefined) limitChanged(caller.accountId);
        return show(account);
      },
    }),
    ...keyRoutes(parts),
    route({
      method: "POST",
      path: "/v1/auth/revoke-tokens",
      name: "revokeTokens",
      tag: "auth",
      summary: "Make every token issued so far invalid; keys stay valid",
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

/** An account's own limits may only be narrower than the operator's. */
function requireWithin(asked: NonNullable<ModelLimitChange>, allowed: ReturnType<AccountRouteParts["operatorLimits"]>) {
  for (const name of ["tokensPerDay", "tokensPerMonth"] as const) {
    const [value, most] = [asked[name], allowed[name]];
    if (value == null || most === null || value <= most) continue;
    const param = `modelLimits.${name}`;
    throw new AppError("invalid_request", `${param}: expected at most ${most}, which this host allows`, { param });
  }
}
