/** What an account's running instances are about to run out of. */
export interface RunwayMailInput {
  reason: "insufficient_balance" | "monthly_limit";
  secondsLeft: number;
  /** Milliseconds since 1970. */
  stopsAt: number;
  runningInstances: number;
  publicUrl: string;
}

/** The mail that says what will stop, when, and what keeps it running: plain text, times in UTC. */
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
secrets. What is stopped costs nothing, and you may start it again later.
`;
  return { subject: `Roost: ${what} in ${timeLeft(secondsLeft)}`, text };
}

const toppingUp = (publicUrl: string) => `What keeps things running: a top-up in USDC:

    ${publicUrl}

or by the API, which answers with the amount and where to send it:

    POST ${publicUrl}/v1/billing/top-up

Or ask who runs this host for credit.
`;

const raising = (publicUrl: string) => `What keeps things running: a higher limit, or null for none:

    PATCH ${publicUrl}/v1/auth/me
    {"monthlyLimit": "25.00"}
`;

function timeLeft(seconds: number): string {
  if (seconds >= 2 * 3_600) return `${Math.round(seconds / 3_600)} hours`;
  const minutes = Math.max(1, Math.round(seconds / 60));
  return `${minutes} ${minutes === 1 ? "minute" : "minutes"}`;
}
