/** The result of one check of `roost doctor`; `mend` says how to fix a failure. */
export interface Finding {
  ok: boolean;
  detail: string;
  mend: string | null;
}

export const pass = (detail: string): Finding => ({ ok: true, detail, mend: null });
export const fail = (detail: string, mend: string): Finding => ({ ok: false, detail, mend });
