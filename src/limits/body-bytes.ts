/** Of an ordinary request (docs/contract/api.md, Sizes). */
export const MAX_BODY_BYTES = 1024 * 1024;
/**
 * Of a conversation with its images, of which all else is an ordinary body. More would hold up the thread that serves
 * everybody for longer than 50 ms at a time (measured).
 */
export const MAX_CONVERSATION_BYTES = 4 * MAX_BODY_BYTES;
