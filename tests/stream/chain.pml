/* A chain of stages that die and lose their memory, in Promela. What changes the counts of links, and when it may, is not
   written here: transitions.pml is made by the test from the text of dashi.stream._chain.ChainState. Here are the slots,
   the memory of stages, and what must never happen to them.

   A value is the number of its item plus one; 0 is a slot or a register that holds nothing. */
#ifndef S
#define S 2        /* stages */
#endif
#ifndef W
#define W 2        /* windows at first */
#endif
#ifndef CAP
#define CAP W      /* ring slots of a link: windows may grow up to them */
#endif
#ifndef AHEAD
#define AHEAD 1    /* items that a stage may have under way */
#endif
#ifndef N
#define N 4        /* items */
#endif
#ifndef KILLS
#define KILLS 1    /* deaths, of any stage at any time */
#endif
#ifndef LOSES
#define LOSES 1    /* whether a stage that dies loses what it received and what its successor does not have */
#endif
#define LAST S
#define LINKS (S + 1)
#define AT(j, item) [(j) * CAP + (item) % CAP]

byte reserved[LINKS], written[LINKS], delivered[LINKS], released[LINKS], window[LINKS], capacity[LINKS];
byte ahead[S];
bool loses[S];
byte outbox[LINKS * CAP], inbox[LINKS * CAP];  /* what lies in slots: of the producer's memory, of the consumer's */
byte work[S * CAP];                            /* what a stage computes just now */
byte held[LINKS];                              /* what travels over a link */
byte epoch[LINKS];
byte kills = 0, got = 0;
bool ready = false, reported = false;

#include "transitions.pml"

inline free_slot(link) {
  outbox AT(link, released[link]) = 0;
  inbox AT(link, released[link]) = 0
}

init {
  byte k = 0;
  atomic {
    do
    :: k < LINKS -> window[k] = W; capacity[k] = CAP; k++
    :: else -> break
    od;
    k = 0;
    do
    :: k < S -> ahead[k] = AHEAD; loses[k] = LOSES; k++
    :: else -> break
    od;
    ready = true
  }
}

active proctype source() {
  ready;
  do
  :: atomic { written[0] < N && may_push() ->
       assert(outbox AT(0, reserved[0]) == 0);          /* no early reuse */
       outbox AT(0, reserved[0]) = reserved[0] + 1;
       push()
     }
  :: written[0] == N -> break
  od
}

active [LINKS] proctype link() {
  byte j = _pid - 2;
  byte then_epoch;
  ready;
end: do
  :: atomic { may_deliver(j) ->
       held[j] = outbox AT(j, delivered[j]);
       assert(held[j] == delivered[j] + 1);             /* what is sent again is still there */
       then_epoch = epoch[j]
     }
     atomic {                                           /* meanwhile anybody may die */
       if
       :: then_epoch == epoch[j] ->
          assert(outbox AT(j, delivered[j]) == held[j]);
          inbox AT(j, delivered[j]) = held[j];
          deliver(j)
       :: else -> skip
       fi;
       held[j] = 0
     }
  od
}

active [S] proctype stage() {
  byte i = _pid - 2 - LINKS;
  ready;
end: do
  :: atomic { may_begin(i) ->
       assert(inbox AT(i, reserved[i + 1]) == reserved[i + 1] + 1);
       assert(outbox AT(i + 1, reserved[i + 1]) == 0);  /* no early reuse */
       work AT(i, reserved[i + 1]) = inbox AT(i, reserved[i + 1]);
       begin(i)
     }
  :: atomic { may_finish(i) ->
       assert(inbox AT(i, written[i + 1]) == written[i + 1] + 1);  /* nobody took the input away */
       outbox AT(i + 1, written[i + 1]) = work AT(i, written[i + 1]);
       work AT(i, written[i + 1]) = 0;
       finish(i)
     }
  :: atomic { may_release(i) -> free_slot(i); release(i) }
  od
}

active proctype sink() {
  ready;
  do
  :: atomic { may_pop() ->
       assert(inbox AT(LAST, released[LAST]) == got + 1);  /* no loss, no duplicate, no reordering */
       free_slot(LAST);
       pop();
       got++
     }
  :: got == N -> break
  od
}

inline lose_memory(i, k) {
  k = delivered[i + 1];
  do
  :: k < written[i + 1] -> outbox AT(i + 1, k) = 0; k++
  :: else -> break
  od;
  do
  :: may_release(i) -> free_slot(i); release(i)
  :: else -> break
  od;
  k = 0;
  do
  :: k < CAP -> inbox[i * CAP + k] = 0; k++
  :: else -> break
  od;
  epoch[i]++;
  epoch[i + 1]++;
  held[i + 1] = 0
}

active proctype killer() {
  byte k, i;
  ready;
end: do
  :: atomic { kills < KILLS ->
       kills++;
       i = 0;
       do
       :: i < S - 1 -> i++
       :: break
       od;
       if
       :: may_survive(i) -> skip
       :: else ->                                       /* the run ends with an error that says what is lost */
          assert(kills > 1);                            /* one death alone never loses anything */
          reported = true; goto end_reported
       fi;
       if
       :: loses[i] -> lose_memory(i, k)
       :: else -> skip
       fi;
       k = 0;
       do
       :: k < CAP -> work[i * CAP + k] = 0; k++
       :: else -> break
       od;
       kill(i);
       k = 0; i = 0
     }
  :: atomic { may_widen(1) -> widen(1) }
  od;
end_reported: false
}

ltl complete { <> (got == N || reported) }
