/* A subscriber that knows nothing of stillcore: Cyclone DDS, and the IDL of the message.
 * Usage: subscriber DOMAIN TOPIC COUNT. Prints each message on a line. */
#include "dds/dds.h"
#include "stamped_vector.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

typedef irobot_interfaces_plugin_msg_dds__StampedVector_ Message;

static void fail(const char *what, dds_return_t code) {
  fprintf(stderr, "cannot %s: %s\n", what, dds_strretcode(-code));
  exit(1);
}

static dds_entity_t made(const char *what, dds_entity_t entity) {
  if (entity < 0)
    fail(what, entity);
  return entity;
}

int main(int argc, char **argv) {
  if (argc != 4)
    return 1;
  long wanted = atol(argv[3]);
  dds_entity_t participant = made("join", dds_create_participant((dds_domainid_t)atoi(argv[1]), NULL, NULL));
  dds_entity_t topic = made("make the topic", dds_create_topic(participant,
      &irobot_interfaces_plugin_msg_dds__StampedVector__desc, argv[2], NULL, NULL));
  dds_qos_t *qos = dds_create_qos();
  dds_qset_reliability(qos, DDS_RELIABILITY_RELIABLE, DDS_SECS(1));
  dds_qset_history(qos, DDS_HISTORY_KEEP_ALL, 0);
  dds_entity_t reader = made("make the reader", dds_create_reader(participant, topic, qos, NULL));
  dds_delete_qos(qos);
  dds_entity_t condition = made("make a condition", dds_create_readcondition(reader, DDS_ANY_STATE));
  dds_entity_t waits = made("make a wait set", dds_create_waitset(participant));
  dds_waitset_attach(waits, condition, 0);
  for (long got = 0; got < wanted;) {
    if (dds_waitset_wait(waits, NULL, 0, DDS_SECS(60)) == 0)
      fail("wait for a message", DDS_RETCODE_TIMEOUT);
    void *samples[1] = {NULL};
    dds_sample_info_t info;
    dds_return_t taken;
    while ((taken = dds_take(reader, samples, &info, 1, 1)) > 0) {
      if (info.valid_data && got < wanted) {
        const Message *message = samples[0];
        printf("%" PRId32 " %" PRIu32 " %" PRIu32 " %a %" PRIu32 " ", message->header_.stamp_.sec_,
               message->header_.stamp_.nanosec_, message->header_.tracking_number_,
               (double)message->header_.frequency_, message->header_.size_);
        for (uint32_t at = 0; at < message->data_._length; at++)
          printf("%02x", message->data_._buffer[at]);
        printf(".\n");
        got++;
      }
      dds_return_loan(reader, samples, taken);
    }
    if (taken < 0)
      fail("take", taken);
  }
  fflush(stdout);
  dds_delete(participant);
  return 0;
}
