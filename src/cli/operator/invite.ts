import type { Invite } from "../../accounts/schema.ts";
import { isoTime, isoTimeOrNull } from "../../lib/clock.ts";
import { formatMoney, type Micros } from "../../lib/money.ts";
import { Failure } from "../failure.ts";
import { colours, note, printJson, printTable, say, shortMoney, shortTime } from "../output.ts";
import { roost } from "./advice.ts";
import { type DataOptions, withData } from "./data-folder.ts";

interface JsonOption {
  json?: true;
}

/** `roost invite create`: the code is shown only once. */
export function createInvite(
  options: DataOptions & JsonOption & { uses: number; credit?: Micros; expires: number },
): Promise<void> {
  return withData(options, "create", ({ invites, config }) => {
    const { uses, credit = config.inviteCredit } = options;
    const { invite, code } = invites.create({ uses, credit, lifeMs: options.expires });
    const { inviteId, expiresAt } = invite;
    if (options.json) {
      printJson({ inviteId, code, uses, credit: formatMoney(credit), expiresAt: isoTime(expiresAt) });
      return;
    }
    say(code);
    note(
      colours.dim(inviteId),
      `: for ${uses === 1 ? "one account" : `${uses} accounts`}, ${shortMoney(credit)} USDC each, until ${shortTime(expiresAt)}`,
    );
  });
}

const PAGE = 500;

/** `roost invite list`: newest first. Codes are stored as hashes, so they cannot be shown. */
export function listInvites(options: DataOptions & JsonOption): Promise<void> {
  return withData(options, "refuse", ({ invites, clock, config }) => {
    const all: Invite[] = [];
    for (let before: string | null = null; ; before = all.at(-1)?.inviteId ?? null) {
      const page = invites.list(before, PAGE);
      all.push(...page);
      if (page.length < PAGE) break;
    }
    const now = clock.now();
    if (options.json) printJson(all.map((invite) => ({ ...show(invite), status: statusOf(invite, now) })));
    else
      printTable(
        ["ID", "STATUS", "USES LEFT", "CREDIT", "EXPIRES", "CREATED"],
        all.map((invite) => [
          invite.inviteId,
          statusOf(invite, now),
          `${invite.usesLeft} of ${invite.uses}`,
          shortMoney(invite.credit),
          shortTime(invite.expiresAt),
          shortTime(invite.createdAt),
        ]),
        `There are no invites. To create one: ${roost("invite create", config.dataDir)}`,
        { leaveOut: ["CREATED", "CREDIT"] },
      );
  });
}

const show = ({ inviteId, uses, usesLeft, credit, createdAt, expiresAt, revokedAt }: Invite) => ({
  inviteId,
  uses,
  usesLeft,
  credit: formatMoney(credit),
  createdAt: isoTime(createdAt),
  expiresAt: isoTime(expiresAt),
  revokedAt: isoTimeOrNull(revokedAt),
});

function statusOf({ revokedAt, usesLeft, expiresAt }: Invite, now: number): "open" | "revoked" | "used" | "expired" {
  if (revokedAt !== null) return "revoked";
  if (usesLeft === 0) return "used";
  return expiresAt > now ? "open" : "expired";
}

/** `roost invite revoke ID`: accounts registered with it stay. */
export function revokeInvite(inviteId: string, options: DataOptions & JsonOption): Promise<void> {
  return withData(options, "refuse", ({ invites, config }) => {
    if (!invites.revoke(inviteId)) {
      throw new Failure(
        `there is no invite ${inviteId} to revoke`,
        `to list invites: ${roost("invite list", config.dataDir)}`,
      );
    }
    if (options.json) printJson({ inviteId, revoked: true });
    else say(`Revoked ${inviteId}.`);
  });
}
