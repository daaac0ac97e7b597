/** Why and when an account's running instances will stop. */
export interface RunwayMailInput {
  reason: "insufficient_balance" | "monthly_limit";
  secondsLeft: number;
  /** Milliseconds since 1970. */
  stopsAt: number;
  runningInstances: number;
  publicUrl: string;
}

/** The mail that warns what will stop, when, and how to keep it running: plain text, times in UTC. */
export function runwayMail({ reason, secondsLeft, stopsAt, runningInstances, publicUrl }: RunwayMailInput): {
  subject: string;
  text: string;
} {
  const one = runningInstances === 1;
  const what = one ? "your running instance stops" : `your ${runningInstances} running instances stop`;
  const when = `${new Date(stopsAt).toISOString().slice(0, 16).replace("T", " ")} UTC`;
  const text = `Hello,

${what} at about ${when}:
by then ${reason === "monthly_limit" ? "this month's usage reaches the monthly limit you set" : "the balance of your account is used up"}.

${reason === "monthly_limit" ? raising(publicUrl) : toppingUp(publicUrl)}
If you do nothing, ${one ? "it stops and keeps" : "they stop and keep"} everything: agents, files, history and
secrets. A stopped instance costs nothing, and you can start it again later.
`;
  return { subject: `Roost: ${what} in ${timeLeft(secondsLeft)}`, text };
}

const toppingUp = (publicUrl: string) => `To keep things running, top up in USDC:

    ${publicUrl}

or with the API, which returns the amount and where to send it:

    POST ${publicUrl}/v1/billing/top-up

Or ask the operator of this host for credit.
`;

const raising = (publicUrl: string) => `To keep things running, raise the limit, or set null for none:

    PATCH ${publicUrl}/v1/auth/me
    {"monthlyLimit": "25.00"}
`;

function timeLeft(seconds: number): string {
  if (seconds >= 2 * 3_600) return `${Math.round(seconds / 3_600)} hours`;
  const minutes = Math.max(1, Math.round(seconds / 60));
  return `${minutes} ${minutes === 1 ? "minute" : "minutes"}`;
}
