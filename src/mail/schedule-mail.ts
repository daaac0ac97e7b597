/** A schedule whose runs fail. */
export interface ScheduleMailInput {
  what: "failing" | "disabled";
  name: string;
  agent: string;
  failuresInARow: number;
  reason: string;
  publicUrl: string;
}

/** The mail that tells of a schedule that fails, or was switched off for it: plain text. */
export function scheduleMail({ what, name, agent, failuresInARow, reason, publicUrl }: ScheduleMailInput): {
  subject: string;
  text: string;
} {
  const isOff = what === "disabled";
  const text = `Hello,

the schedule "${name}" of your agent ${agent} has failed ${failuresInARow} times in a row${isOff ? ", so it was switched off" : ""}.
The last time:

    ${reason}

${isOff ? "Switch it on again once that is mended" : "After five failures in a row it is switched off. Look at the agent"}:

    ${publicUrl}
`;
  return { subject: `Roost: the schedule "${name}" ${isOff ? "was switched off" : "is failing"}`, text };
}
